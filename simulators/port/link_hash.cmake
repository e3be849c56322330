# <arch_hash>.so beside NAME.so: how a program finds the model of the machine that it was compiled for.
file(READ "${HEADER}" text LIMIT 400)
string(REGEX MATCH "arch_hash (0x[0-9a-f]+)" found "${text}")
set(hash "${CMAKE_MATCH_1}")
file(GLOB links "${FOLDER}/0x*.so")
foreach(link ${links})
  if(NOT IS_SYMLINK "${link}")
    continue()   # a model of `dlc hw build-rtl`
  endif()
  file(READ_SYMLINK "${link}" target)
  if(target STREQUAL "${NAME}.so")
    file(REMOVE "${link}")   # of an older description
  endif()
endforeach()
file(CREATE_LINK "${NAME}.so" "${FOLDER}/${hash}.so" SYMBOLIC)
