# Run at build time: writes OUT, a header with the commit of SOURCE. An unchanged file is left alone, so that nothing is
# rebuilt. "-dirty": tracked files differ from the commit. "unknown": SOURCE is not a git checkout of its own.
cmake_minimum_required(VERSION 3.22)

function(git result)
  execute_process(COMMAND git --no-optional-locks -C ${SOURCE} ${ARGN} OUTPUT_VARIABLE answer
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${result} "${answer}" PARENT_SCOPE)
endfunction()

set(commit "unknown")
git(top rev-parse --show-toplevel)
git(head rev-parse --short=12 HEAD)
file(REAL_PATH "${SOURCE}" source)
if(head AND top)
  file(REAL_PATH "${top}" top)
  if(top STREQUAL source)
    git(changes status --porcelain --untracked-files=no)
    set(commit ${head})
    if(changes)
      string(APPEND commit "-dirty")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "inline constexpr char kBuildCommit[] = \"@commit@\";\n" @ONLY)
