"""Policies: what proposes chunks of actions."""
