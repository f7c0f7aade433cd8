"""Unattended work: issues, one after the other or side by side. The only package that may import the durable engine."""
