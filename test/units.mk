# What the Makefiles of unit tests have in common: each of TESTS is a program in OUT that
# prints TAP.

check: $(TESTS:%=$(OUT)/%)
	@failed=; \
	for t in $(TESTS); do \
		echo "# $$t"; \
		$(OUT)/$$t || failed="$$failed $$t"; \
	done; \
	if [ -n "$$failed" ]; then echo "# failed:$$failed"; exit 1; fi

clean:
	rm -rf $(OUT)

.PHONY: all check clean
