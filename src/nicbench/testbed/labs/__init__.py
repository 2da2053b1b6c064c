"""Labs, one kind a file: testbeds made for one run. Modules with an underscore also make testbeds of real ports."""
