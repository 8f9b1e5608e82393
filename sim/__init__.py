"""Simulation: robosuite made fast and trustworthy."""
