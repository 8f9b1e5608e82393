"""Goals, judges and subtasks of each task."""
