"""Bytes on disk to recordings to training windows."""
