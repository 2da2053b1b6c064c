"""Imports the results of others: tables, exports of testers, recordings of nmon, and published data sets."""
