.PHONY: setup demo check test soak lint bench
# Each name does its own set-up first; scripts/tasks.py is the definition.
setup demo check test soak lint bench:
	@python3 scripts/tasks.py $@ $(ARGS)
