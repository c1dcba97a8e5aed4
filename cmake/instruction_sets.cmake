# The same kernel once per instruction set (xsa/kernels/cpu/simd.h); chosen at run time by cpuid.
get_filename_component(cpu_kernels ${CMAKE_CURRENT_LIST_DIR}/../xsa/kernels/cpu ABSOLUTE)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2)
  set_source_files_properties(${cpu_kernels}/avx2.cpp PROPERTIES COMPILE_OPTIONS "${avx2}")
  set_source_files_properties(${cpu_kernels}/avx3.cpp PROPERTIES COMPILE_OPTIONS
    "${avx2};-mavx512f;-mavx512bw;-mavx512cd;-mavx512dq;-mavx512vl")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  # Highway 1.0 marks its NEON functions so; they inline only into the like. No such instruction is used.
  set_source_files_properties(${cpu_kernels}/baseline.cpp PROPERTIES COMPILE_OPTIONS "-march=armv8-a+crypto")
endif()
