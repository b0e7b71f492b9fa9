#!/bin/sh
# Off-screen OpenGL without a display: install Mesa's libraries where that is allowed, else print the command.
# Never fails: without them pictures come from Isaac Lab's own camera.
PATH="$PATH:/usr/sbin:/sbin"
install="apt-get install -y --no-install-recommends libosmesa6 libegl1 libgl1 libopengl0 libgl1-mesa-dri"

missing=""
for library in libOSMesa.so libEGL.so.1; do
  ldconfig -p 2>/dev/null | grep -q "$library" || missing="$missing $library"
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing Mesa for off-screen OpenGL (missing:$missing)"
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && $install -qq >/dev/null; } && exit 0
  echo "Mesa could not be installed; pictures will come from Isaac Lab's own camera, which is slower" >&2
  exit 0
fi
echo "off-screen OpenGL is missing$missing; pictures will come from Isaac Lab's own camera, which is slower." >&2
echo "To install it: sudo apt-get update && sudo $install" >&2
