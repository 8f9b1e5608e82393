"""What meets in a run: YAML nodes, built by ``_target_``. See ``ambidex VERB --help``."""
