"""Where jobs run: as processes of this machine, or nowhere, in memory."""
