"""Values: what judges states and chunks."""
