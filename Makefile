# make demo    installs what is missing, builds, denoises a picture that it draws itself
# make check   installs, builds, runs all tests that need no GPU and take minutes at most
PRESET ?= cpu
BUILD  ?= build
DATA   ?= $(TESSERA_DATA)

.PHONY: demo check check-long check-sanitize build packages format clean

demo: build
	@tools/demo $(BUILD)

build: packages
	@cmake --preset $(PRESET) -B $(BUILD) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@cmake --build $(BUILD) --parallel

check: build
	@cd $(BUILD) && TESSERA_DATA="$(DATA)" ctest --output-on-failure --label-exclude long

# Published PSNR on whole sets, big memory limits, hundreds of random plans: about half an hour.
check-long: build
	@cd $(BUILD) && TESSERA_DATA="$(DATA)" ctest --output-on-failure --label-regex long

check-sanitize:
	@$(MAKE) check PRESET=sanitize BUILD=build-sanitize

packages:
	@tools/install_packages

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	@rm -rf $(BUILD) $(BUILD).log build-sanitize build-sanitize.log
