"""BIOS settings and power as a machine's management controller tells them (Redfish, DMTF DSP0266): read, never changed."""
