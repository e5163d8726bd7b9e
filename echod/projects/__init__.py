"""The projects that echod maintains: the list of registered ones, their own settings, and discovery of their stores."""
