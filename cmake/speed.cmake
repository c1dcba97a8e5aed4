# Two tools that save time where they are installed: ccache and mold.
option(XSA_CCACHE "Use ccache" ON)
find_program(XSA_CCACHE_PROGRAM ccache)
if(XSA_CCACHE AND XSA_CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What ccache must be told about precompiled headers (Torch's); GCC must be told -fpch-preprocess as well.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${XSA_CCACHE_PROGRAM})
  if(XSA_TORCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()
find_program(XSA_MOLD mold)
if(XSA_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
