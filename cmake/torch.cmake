# Imported targets made from the Python wheel itself. find_package(Torch) is not used: with a CUDA build of torch it
# wants the CUDA toolkit, which nobody needs to build this.
#   xsa_torch: LibTorch's headers, ABI flag and CPU libraries.
execute_process(
  COMMAND ${XSA_PYTHON} -c "import os, torch; print(';'.join([os.path.dirname(torch.__file__), torch.__version__.split('+')[0], str(int(torch._C._GLIBCXX_USE_CXX11_ABI))]))"
  OUTPUT_VARIABLE torch_facts OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE torch_failed ERROR_VARIABLE torch_error)
if(torch_failed)
  message(FATAL_ERROR "'${XSA_PYTHON}' cannot import torch:\n${torch_error}\nRun `make build`, which installs it, or give PYTHON=... with torch 2.13 or newer.")
endif()
list(GET torch_facts 0 XSA_TORCH_DIR)
list(GET torch_facts 1 XSA_TORCH_VERSION)
list(GET torch_facts 2 torch_abi)
if(XSA_TORCH_VERSION VERSION_LESS 2.13)
  message(FATAL_ERROR "'${XSA_PYTHON}' has torch ${XSA_TORCH_VERSION}; expected 2.13 or newer.")
endif()
message(STATUS "torch ${XSA_TORCH_VERSION} in ${XSA_TORCH_DIR}")

add_library(xsa_torch INTERFACE)
target_include_directories(xsa_torch SYSTEM INTERFACE ${XSA_TORCH_DIR}/include ${XSA_TORCH_DIR}/include/torch/csrc/api/include)
# -fopenmp to compile (without it at::parallel_for is silently serial), never to link: GOMP_* must come from the libgomp
# that torch itself loads, which wheels carry; linkers want it named.
file(GLOB torch_gomp ${XSA_TORCH_DIR}/lib/libgomp*.so* ${XSA_TORCH_DIR}/../torch.libs/libgomp*.so*)
if(NOT torch_gomp)
  set(torch_gomp gomp)
endif()
target_compile_options(xsa_torch INTERFACE -fopenmp)
target_compile_definitions(xsa_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=${torch_abi})
# Not libtorch.so: in a CUDA build it drags in CUDA's libraries, whose own needs the linker would then want resolved.
target_link_libraries(xsa_torch INTERFACE ${XSA_TORCH_DIR}/lib/libtorch_cpu.so ${XSA_TORCH_DIR}/lib/libc10.so ${torch_gomp})
target_link_options(xsa_torch INTERFACE -Wl,-rpath,${XSA_TORCH_DIR}/lib -Wl,--allow-shlib-undefined)
