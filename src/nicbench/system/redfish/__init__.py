"""What a machine's management controller tells (Redfish, DMTF DSP0266): BIOS settings and power, never changed."""
