"""Screens: the live dashboard, the screens behind the number keys, and modal questions."""
