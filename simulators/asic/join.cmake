# One translation unit of everything Verilator wrote, so that the list of its files need not be known before.
file(GLOB sources "${DIR}/Vnx*.cpp")
list(SORT sources)
set(text "")
foreach(source ${sources})
  string(APPEND text "#include \"${source}\"\n")
endforeach()
file(WRITE "${DIR}/model.cpp" "${text}")
