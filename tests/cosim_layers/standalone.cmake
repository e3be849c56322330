# An artifact of a description with `like:` has the same bytes in any folder, and runs without that folder:
#   cmake -DBUILD=... -DSOURCE=... -DWORK=... -P standalone.cmake
file(REMOVE_RECURSE "${WORK}")
foreach(folder a "another one")
  file(MAKE_DIRECTORY "${WORK}/${folder}")
  file(COPY "${SOURCE}/hwdesc/asic.recipes" "${SOURCE}/tests/models/fashion_mnist/fashion_int8.onnx"
       DESTINATION "${WORK}/${folder}")
  configure_file("${SOURCE}/hwdesc/asic.yaml" "${WORK}/${folder}/base.yaml" COPYONLY)
  file(WRITE "${WORK}/${folder}/own.yaml" "dlc_hw: 1\nname: own\nlike: base.yaml\n")
  execute_process(COMMAND "${BUILD}/bin/dlc" "--hw=${WORK}/${folder}/own.yaml,R=8" --dim N=1
                          "${WORK}/${folder}/fashion_int8.onnx" -o "${WORK}/${folder}.dlca" COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE_RECURSE "${WORK}/${folder}")
endforeach()
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files "${WORK}/a.dlca" "${WORK}/another one.dlca"
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${BUILD}/bin/dlc" cosim "${WORK}/a.dlca" COMMAND_ERROR_IS_FATAL ANY)
