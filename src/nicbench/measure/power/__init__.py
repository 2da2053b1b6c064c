"""The meters of a test of power: RAPL, hwmon, IPMI and Redfish, read while frames pass and while none do."""
