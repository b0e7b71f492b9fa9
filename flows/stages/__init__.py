"""The stages of a run as plain functions, for the flow and for single commands; each can be repeated at no cost."""
