"""What the verbs of the command do."""
