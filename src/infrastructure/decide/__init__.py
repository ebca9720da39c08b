"""Deciders: who says where a steered conduct measures next."""
