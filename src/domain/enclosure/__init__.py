"""Enclosure: what the interlock reports about the volumes it guards, and whether work may begin in them."""
