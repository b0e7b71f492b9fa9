"""Readers of what others have recorded: run folders of this project, and LeRobot datasets."""
