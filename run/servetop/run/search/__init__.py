"""The largest load within objectives: which loads to try next, and what was found, from one continuous run."""
