"""Everything about Claude Code."""

TESTED_VERSIONS = ("2.1.328",)
"""Versions that the whole-system tests ran on; `clients/package.json` pins the last one."""
