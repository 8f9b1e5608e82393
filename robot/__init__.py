"""The kernel: types, roles, clocks, limits, the one loop, episodes and jobs."""
