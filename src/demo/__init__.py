"""A demonstration: a simulated tomography beamline behind real EPICS, and a night on it through REST and MCP alone."""
