"""Files on disk: headers with their include paths, kernel trees, trace headers below a folder."""
