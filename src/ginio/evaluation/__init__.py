"""Protocols by which networks are judged."""
