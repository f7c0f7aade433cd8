"""Everything about Codex."""

TESTED_VERSIONS = ("0.171.0",)
"""Versions that the whole-system tests ran on; `clients/codex/package.json` pins the last one."""
