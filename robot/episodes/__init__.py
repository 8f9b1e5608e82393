"""Stores of episodes."""
