# cmake -DBUILD=... -DSOURCE=... -DWORK=... -DCXX=... -DCC=... -DSANITIZE=... -P check.cmake
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}/bad" "${WORK}/so" "${WORK}/o" "${WORK}/a")
set(prefix "${WORK}/prefix")
set(ENV{HOME} "${WORK}")   # nobody's own plugins
set(ENV{DLC_PLUGIN_PATH} "")

function(must_succeed what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${what} failed (${code}):\n${out}\n${err}")
  endif()
  set(out "${out}" PARENT_SCOPE)
  set(err "${err}" PARENT_SCOPE)
endfunction()

function(must_fail what expected part)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  string(FIND "${err}" "${part}" at)
  if(NOT code EQUAL expected OR at LESS 0)
    message(FATAL_ERROR "${what}: exit code ${expected} and '${part}' were expected, got ${code}:\n${out}\n${err}")
  endif()
endfunction()

function(must_contain text part)
  string(FIND "${text}" "${part}" at)
  if(at LESS 0)
    message(FATAL_ERROR "'${part}' is not in:\n${text}")
  endif()
endfunction()

# ---- a good one, against the installed package alone
set(flags "")
if(SANITIZE)   # what links the checked SDK is checked too
  set(flags -DDLC_SANITIZE=ON "-DCMAKE_CXX_FLAGS=-fsanitize=address,undefined -fno-sanitize-recover=all")
endif()
must_succeed("install" ${CMAKE_COMMAND} --install "${BUILD}" --prefix "${prefix}")
must_succeed("configure" ${CMAKE_COMMAND} -S "${SOURCE}/npu" -B "${WORK}/npu" "-DCMAKE_PREFIX_PATH=${prefix}"
             "-DCMAKE_CXX_COMPILER=${CXX}" ${flags})
must_succeed("build" ${CMAKE_COMMAND} --build "${WORK}/npu")
set(dlc "${prefix}/bin/dlc")
set(npu "${WORK}/npu/lib/dlc/plugins")

must_succeed("plugins" "${dlc}" plugins --why --plugin-path "${npu}")
must_contain("${out}" "my_npu 0.1.0  my_npu:")
must_contain("${out}" "${prefix}/lib/dlc/plugins/libcpu.so")
must_succeed("targets" "${dlc}" targets --plugin-path "${npu}")
must_contain("${out}" "my_npu:1         my_npu: not available: there is one")

set(model "${SOURCE}/model.dlcg")
set(hw "${SOURCE}/npu/my_npu.yaml")
must_succeed("compile" "${dlc}" "--hw=${hw}" --plugin-path "${npu}" "${model}" -o "${WORK}/m.dlca")
must_succeed("run" "${dlc}" run "${WORK}/m.dlca" --plugin-path "${npu}" --device my_npu: --json
             --input "x=${SOURCE}/x.npy" --output "${WORK}/y.npy")
must_contain("${out}" "\"runs\": 1")
must_succeed("run cpu" "${dlc}" run "${WORK}/m.dlca" --plugin-path "${npu}" --device cpu:
             --input "x=${SOURCE}/x.npy" --output "${WORK}/y_cpu.npy")
must_succeed("same" ${CMAKE_COMMAND} -E compare_files "${WORK}/y.npy" "${WORK}/y_cpu.npy")

# What a plugin says of its failure arrives whole; an exception does not cross.
must_fail("diagnostics" 1 "my_npu.yaml:4:1: error: the NPU takes four calls (node conv7)" "${dlc}" "--hw=${hw}"
          --plugin-path "${npu}" "${SOURCE}/six_calls.dlcg" -o "${WORK}/no.dlca")
must_fail("exception" 3 "internal error in plugin: more than one weight" "${dlc}" "--hw=${hw}" --plugin-path "${npu}"
          "${SOURCE}/two_weights.dlcg" -o "${WORK}/no.dlca")
if(EXISTS "${WORK}/no.dlca")
  message(FATAL_ERROR "a failed compilation left a file")
endif()

# Libraries for programs that know nothing of dlc: the three forms give the same, with the header beside them.
must_succeed("run interp" "${dlc}" run "${WORK}/m.dlca" --plugin-path "${npu}" --device interp:
             --input "x=${SOURCE}/x.npy")
must_contain("${out}" "y: f32[2,3] = -2.5 -3 -1.5 0.5 3 7.5")
foreach(format so o a)
  must_succeed("compile .${format}" "${dlc}" --hw=x86-64 "${SOURCE}/model.dlcg" -o "${WORK}/${format}/model.${format}")
  must_succeed("use .${format}" "${CC}" "-I${WORK}/${format}" "${SOURCE}/use_library.c" "${WORK}/${format}/model.${format}"
               -lm -o "${WORK}/${format}/use" "-Wl,-rpath,${WORK}/${format}")
  must_succeed("run with .${format}" "${WORK}/${format}/use")
  if(NOT out STREQUAL "-2.5 -3 -1.5 0.5 3 7.5\n")
    message(FATAL_ERROR ".${format} computes ${out}")
  endif()
endforeach()

# The accelerator from what was installed alone: description, recipes, models of its RTL; and one more model, built here.
set(int8 "${SOURCE}/../models/fashion_mnist/fashion_int8.onnx")
must_succeed("compile for asic" "${dlc}" --hw=asic.yaml,R=8 --dim N=1 "${int8}" -o "${WORK}/asic.dlca")
foreach(device asic:func asic:rtl)
  must_succeed("run on ${device}" "${dlc}" bench "${WORK}/asic.dlca" --device ${device} --runs 1 --warmup 0)
endforeach()
must_succeed("cosim" "${dlc}" cosim "${WORK}/asic.dlca")
must_contain("${out}" ": bit exact")
must_succeed("compile for another asic" "${dlc}" --hw=asic.yaml,R=4,IN_W=4096 --dim N=1 "${int8}" -o "${WORK}/asic4.dlca")
must_fail("no model" 1 "asic.yaml,IN_W=4096,R=4` makes it" "${dlc}" cosim "${WORK}/asic4.dlca")
must_succeed("build-rtl" "${dlc}" hw build-rtl asic.yaml,R=4,IN_W=4096)
must_contain("${out}" "${prefix}/lib/dlc/rtl/0x")
must_succeed("cosim of it" "${dlc}" cosim "${WORK}/asic4.dlca")
must_contain("${out}" ": bit exact")

# A network: the library has the code that dlc itself runs, packed weights and skeleton too, and gives the same bits; on
# the caller's threads as well.
set(network "${SOURCE}/../models/fashion_mnist/fashion_float.onnx")
file(MAKE_DIRECTORY "${WORK}/net")
foreach(format so o a)
  must_succeed("compile net.${format}" "${dlc}" --hw=x86-64-v3 --dim N=1 "${network}" -o "${WORK}/net/net.${format}")
  must_succeed("build net.${format}" "${CC}" -Wall -Wextra -Werror "-I${WORK}/net" "${SOURCE}/use_network.c"
               "${WORK}/net/net.${format}" -lm -o "${WORK}/net/use_${format}" "-Wl,-rpath,${WORK}/net")
endforeach()
must_succeed("disassemble" objdump -d --no-show-raw-insn "${WORK}/net/net.so")
must_contain("${out}" "vfmadd231ps")
must_succeed("asm" "${dlc}" --hw=x86-64-v3 --dim N=1 "${network}" --emit=asm)
must_contain("${out}" "vfmadd231ps")
must_succeed("llvm" "${dlc}" --hw=x86-64-v3 --dim N=1 "${network}" --emit=llvm)
must_contain("${out}" "@llvm.fma.v8f32")
must_succeed("explain" "${dlc}" explain --hw=x86-64-v3 --dim N=1 "${network}")
must_contain("${out}" "contraction, tile")
must_contain("${out}" "does not match, because")
must_succeed("input" "${WORK}/net/use_so" inputs "${WORK}/net/x.npy")
must_succeed("compile net.dlca" "${dlc}" --hw=x86-64-v3 --dim N=1 "${network}" -o "${WORK}/net/net.dlca" --json)
must_contain("${out}" "cpu code")
execute_process(COMMAND "${dlc}" run "${WORK}/net/net.dlca" --device cpu: --input "${WORK}/net/x.npy"
                        --output "${WORK}/net/y.npy" RESULT_VARIABLE code ERROR_VARIABLE err)
if(code EQUAL 0)
  foreach(format so o a)
    must_succeed("run net.${format}" "${WORK}/net/use_${format}" run "${WORK}/net/y.npy")
  endforeach()
else()
  string(FIND "${err}" "this machine lacks " at)
  if(at LESS 0)
    message(FATAL_ERROR "net.dlca: ${err}")
  endif()
  message(STATUS "this machine has no AVX2: the libraries are not run")
endif()

# Weights of more than 64 MiB lie in a file beside the library, which knows its own.
file(MAKE_DIRECTORY "${WORK}/large")
set(large -DINPUTS=17640000 -DOUTPUTS=4200 "-DSHAPE=\"4200, 4200\"")
must_succeed("a writer" "${CC}" "-I${WORK}/net" ${large} "${SOURCE}/use_network.c" "${WORK}/net/net.o" -lm -o
             "${WORK}/large/write")
must_succeed("write weights" "${WORK}/large/write" inputs "${WORK}/large/w.npy")
must_succeed("as .npz" "${dlc}" run "${SOURCE}/weights.dlcg" --device interp: --input "w=${WORK}/large/w.npy" --output
             "${WORK}/large/w.npz")
set(large "${SOURCE}/large.dlcg" --weights "${WORK}/large/w.npz" --hw=x86-64)
must_succeed("compile net.so" "${dlc}" ${large} -o "${WORK}/large/net.so")
must_succeed("build" "${CC}" "-I${WORK}/large" -DINPUTS=4200 -DOUTPUTS=4200 "-DSHAPE=\"1, 4200\""
             "${SOURCE}/use_network.c" "${WORK}/large/net.so" -o "${WORK}/large/use" "-Wl,-rpath,${WORK}/large")
must_succeed("input" "${WORK}/large/use" inputs "${WORK}/large/x.npy")
must_succeed("run" "${dlc}" run ${large} --input "x=${WORK}/large/x.npy" --output "${WORK}/large/y.npy")
must_succeed("run net.so" "${WORK}/large/use" run "${WORK}/large/y.npy" "${WORK}/large/net.weights")
file(SIZE "${WORK}/large/net.so" size)
if(size GREATER 1000000)
  message(FATAL_ERROR "net.so has ${size} bytes: the weights are inside")
endif()
file(REMOVE_RECURSE "${WORK}/large")

# Where temporary files cannot be made none are wanted, and what cannot be written is said before the work.
set(ENV{TMPDIR} /nonexistent)
must_succeed("no temporary files" "${dlc}" "${SOURCE}/model.dlcg" -o "${WORK}/so/model.so")
unset(ENV{TMPDIR})
must_fail("no folder" 1 "${WORK}/none/model.so: error: cannot write: No such file or directory" "${dlc}"
          "${SOURCE}/model.dlcg" -o "${WORK}/none/model.so")

# One symbol leaves a plugin.
foreach(library "${npu}/libmy_npu.so" "${prefix}/lib/dlc/plugins/libcpu.so")
  must_succeed("nm" nm -D --defined-only --extern-only "${library}")
  string(REGEX MATCHALL " [A-Za-z] [A-Za-z_0-9@]+" symbols "${out}")
  if(NOT symbols STREQUAL " T dlc_plugin_v1_entry")
    message(FATAL_ERROR "${library} exports ${symbols}")
  endif()
endforeach()

# ---- wrong ones: name, compile option, reason
function(bad name option reason)
  must_succeed("build ${name}" "${CC}" -shared -fPIC "-I${prefix}/include" "-DNAME=\"${name}\"" ${option}
               "${SOURCE}/bad/bad.c" -o "${WORK}/bad/lib${name}.so")
  file(WRITE "${WORK}/bad/${name}.plugin.yaml"
       "dlc_plugin: 1\nname: ${name}\nversion: 0.1.0\nabi: 1\nschemes: [${name}]\n")
  set(reasons "${reasons}" "${reason}" PARENT_SCOPE)
endfunction()
file(STRINGS "${prefix}/include/dlc/plugin/dlc_plugin.h" minor REGEX "define DLC_ABI_MINOR")
string(REGEX REPLACE "[^0-9]*([0-9]+)u" "\\1" minor "${minor}")
set(other_version "it has plugin interface 7.${minor}, this dlc has 1.${minor}")
bad(version -DBAD_VERSION "${other_version}")
bad(symbol -DBAD_SYMBOL "it has no symbol dlc_plugin_v1_entry")
bad(nothing -DBAD_NULL "dlc_plugin_v1_entry returned nothing")
bad(small -DBAD_SMALL "it says that its table has 24 bytes, which cannot be")
bad(large -DBAD_LARGE "it says that its table has 1073741824 bytes, which cannot be")
bad(beyond -DBAD_BEYOND "it says that its table has 4096 bytes, which cannot be")
bad(runtime -DBAD_RUNTIME_SIZE "it says that its runtime table has 8 bytes, which cannot be")
bad(name -DBAD_NAME "it calls itself 'somebody_else', its manifest says 'name'")
bad(ir -DBAD_IR "it reads 'dlc.program 9', this dlc writes 'dlc.program 1'")
file(WRITE "${WORK}/bad/libnomanifest.so" "")
file(WRITE "${WORK}/bad/libnoelf.so" "not a library")
file(WRITE "${WORK}/bad/noelf.plugin.yaml" "dlc_plugin: 1\nname: noelf\nabi: 1\nschemes: [noelf]\n")
file(WRITE "${WORK}/bad/libolder.so" "")
file(WRITE "${WORK}/bad/older.plugin.yaml" "dlc_plugin: 1\nname: older\nabi: 0\nschemes: [older]\n")
file(WRITE "${WORK}/bad/libtypo.so" "")
file(WRITE "${WORK}/bad/typo.plugin.yaml" "dlc_plugin: 1\nname: typo\nabi: 1\nschems: [typo]\n")
list(APPEND reasons "it has no manifest: nomanifest.plugin.yaml is not beside it" "is no whole shared library"
     "it was made for plugin interface 0, this dlc has 1" "unknown key 'schems'")
must_succeed("plugins" "${dlc}" plugins --why --plugin-path "${WORK}/bad")
foreach(reason ${reasons})
  must_contain("${out}" "${reason}")
endforeach()
must_contain("${out}" "cpu 0.1.0")   # the others do not suffer
must_fail("run on a refused plugin" 1 "${other_version}" "${dlc}" run "${WORK}/m.dlca"
          --plugin-path "${WORK}/bad" --device version: --input "x=${SOURCE}/x.npy")
