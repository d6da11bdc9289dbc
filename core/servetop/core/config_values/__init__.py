"""Values of a configuration that have a form of their own: prices, the failure limit, predicted and published cells."""
