"""One finding model, three renderings: text, JSON and HTML."""
