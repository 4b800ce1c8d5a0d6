"""Frame series and how steady they are. Pure: values in, values out."""
