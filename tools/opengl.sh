#!/bin/sh
# Off-screen OpenGL without a display: install Mesa where that is allowed, else print the command.
# Never fails: without OpenGL, pictures come from Isaac Lab's own camera.
PATH="$PATH:/usr/sbin:/sbin"
install="apt-get install -y --no-install-recommends"
packages="libegl1 libopengl0 libgl1-mesa-dri"

has() { ldconfig -p 2>/dev/null | grep -q "$1"; }
ready() { has libOSMesa.so || { has libEGL.so.1 && has libOpenGL.so.0; }; }

ready && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing Mesa for off-screen OpenGL: $packages"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq && $install -qq $packages >/dev/null
fi
ready && exit 0
echo "no off-screen OpenGL here: pictures will come from Isaac Lab's own camera, which is slower" >&2
echo "to install it on Debian or Ubuntu: sudo apt-get update && sudo $install $packages" >&2
exit 0
