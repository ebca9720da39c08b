"""The facilities that this one knows, itself among them."""
