# make demo    installs what is missing, builds, sharpens a picture that it draws and blurs itself
# make check   installs, builds, runs all tests that need no GPU and take minutes at most
# make check-gpu   the tests that need an NVIDIA card
# make docs   the documentation as a site, with report pages; all links checked
# make install   program, libraries, headers, models, manual below PREFIX (and DESTDIR); make deb   a Debian package
PREFIX ?= /usr/local
PRESET ?= cpu
BUILD  ?= build
DATA   ?= $(TESSERA_DATA)
# Tests at once. Each takes two cores at most, and waits for files and for starts of programs in between.
JOBS   ?= 2

.PHONY: demo docs check check-long check-gpu check-sanitize check-thread build install deb packages format clean

demo: build
	@tools/demo $(BUILD)

docs: build
	@tools/install_packages docs
	@tools/build_docs $(BUILD)

build: packages
	@cmake --preset $(PRESET) -B $(BUILD) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@cmake --build $(BUILD) --parallel

check: build
	@cd $(BUILD) && TESSERA_DATA="$(DATA)" ctest --output-on-failure --parallel $(JOBS) --label-exclude long

# Published PSNR on whole sets, big memory limits, hundreds of random plans: about half an hour.
check-long: build
	@cd $(BUILD) && TESSERA_DATA="$(DATA)" ctest --output-on-failure --label-regex long

# Needs an NVIDIA card and nvcc: the op table, the device, the networks on the card.
check-gpu: build
	@cd $(BUILD) && TESSERA_REQUIRE_GPU=1 TESSERA_DATA="$(DATA)" ctest --output-on-failure --label-regex gpu

check-sanitize:
	@$(MAKE) check PRESET=sanitize BUILD=build-sanitize

# Two contexts in two threads, the threads that prepare training data, and those that watch ranks, under the thread sanitizer.
check-thread: packages
	@cmake --preset thread >build-thread.log 2>&1 || { cat build-thread.log; exit 1; }
	@cmake --build build-thread --parallel --target test_threads test_pool test_trace test_ring test_data test_watch
	@cd build-thread && ctest --output-on-failure -R '^test_(threads|pool|trace|ring|data|watch)$$'

install: build
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix $(PREFIX) --strip >/dev/null
	@echo "installed below $(DESTDIR)$(PREFIX)"

deb: build
	@cd $(BUILD) && cpack -G DEB >cpack.log 2>&1 || { cat cpack.log; exit 1; }
	@ls $(BUILD)/*.deb

packages:
	@tools/install_packages

format:
	@git ls-files '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format -i

clean:
	@rm -rf $(BUILD) $(BUILD).log build-sanitize build-sanitize.log build-thread build-thread.log
