"""Keeps long-running coding agents working without losing what they know."""

__version__ = "0.1.0"
