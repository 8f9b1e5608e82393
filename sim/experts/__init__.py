"""Scripted experts with a dial for quality."""
