"""Torch parts that policies and values share."""
