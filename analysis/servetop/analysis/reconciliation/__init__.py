"""Why two load generators print different figures of one server: their difference in parts."""
