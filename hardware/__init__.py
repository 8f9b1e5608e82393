"""Real arms."""
