"""The server: trained models behind HTTP, with a web page, an API of its own, and the paths of Annif's."""
