"""The unattended runs of a directory, and how far their issues are."""
