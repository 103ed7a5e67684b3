# Sources that are compiled together, so that heavy headers (CLI11, JSON, fmt, Highway, the standard library) are read and
# their templates instantiated once for all of a batch. Its files share what is in their unnamed namespaces, so no two
# may give one name to different things. What is in no batch is compiled alone, as everything is without ORTHANT_BATCHES.
option(ORTHANT_BATCHES "Compile related sources together: a fresh build takes half the time" ON)
if(NOT ORTHANT_BATCHES)
  return()
endif()

# orthant_batch(<module> <source without .cpp>...)
function(orthant_batch module)
  string(REPLACE "/" "_" group ${ARGV1})
  list(TRANSFORM ARGN REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/orthant/${module}/\\1.cpp" OUTPUT_VARIABLE sources)
  set_source_files_properties(${sources} TARGET_DIRECTORY orthant_${module} PROPERTIES UNITY_GROUP ${group})
  set_target_properties(orthant_${module} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC takes every file of a batch for a header and warns of classes with members from an unnamed namespace.
  target_compile_options(orthant_${module} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# orthant_simd_batch(<module> <source without .cpp>...): for sources that Highway includes in themselves, once per instruction
# set. Here it includes the batch; each source names itself for that, so the batch takes the name back at its end.
function(orthant_simd_batch module)
  string(REPLACE "/" "_" group ${ARGV1})
  set(batch ${PROJECT_BINARY_DIR}/orthant/${module}/simd_${group}.cpp)
  set(name "#undef HWY_TARGET_INCLUDE\n#define HWY_TARGET_INCLUDE \"${batch}\"\n")
  list(TRANSFORM ARGN REPLACE "(.+)" "#include \"orthant/${module}/\\1.cpp\"\n" OUTPUT_VARIABLE includes)
  string(JOIN "" text "${name}" "#include \"orthant/kernels/simd.hpp\"\n" "#include <hwy/foreach_target.h>\n" ${includes} "${name}")
  file(CONFIGURE OUTPUT ${batch} CONTENT "${text}" @ONLY)
  target_sources(orthant_${module} PRIVATE ${batch})
  list(TRANSFORM ARGN REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/orthant/${module}/\\1.cpp" OUTPUT_VARIABLE sources)
  set_source_files_properties(${sources} TARGET_DIRECTORY orthant_${module} PROPERTIES HEADER_FILE_ONLY ON)
endfunction()

orthant_batch(tensor box difference distribution layout moves shape window window_boxes)
orthant_batch(comm agree alone attendance board comm failure launch mpi_comm mpi_transfer neighbours run shared_pages watchdog)
orthant_batch(comm affinity command hosts job_files lifeline machine reach sockets version)
orthant_batch(model graph infer init ops parameters pieces task traits work)
orthant_batch(model fields input_shape network printable zoo)
orthant_batch(model arguments signature stored)
orthant_batch(model document zoo/settings)
orthant_batch(model yaml_ops yaml_read yaml_window yaml_write)
orthant_batch(plan cut_choice distribution fit groups plan plan_json remarks)
orthant_batch(plan advice attempt exchange_forms machines request share spatial stages strategy verify)
orthant_batch(schedule analysis emitter exchanges fusion live parameters parcels passes place text value volume)
orthant_batch(microbatch candidate divide store)
orthant_batch(oracle features fingerprint prices profile profile_json)
orthant_batch(oracle actors memory predict simulation)
orthant_batch(schedule lower lowering ops/cellwise ops/contraction ops/loss ops/norm ops/pool ops/shape ops/shuffle)
orthant_batch(schedule bucket_rounds chrome_trace classes gather_rounds levels)
orthant_batch(planner cut_prices cuts elimination hybrids improve local_work planner recut)
orthant_batch(planner search shortage tables traffic trials)
orthant_batch(schedule byte_set footprints verify verify_exchanges verify_memory verify_ranks verify_structure)
orthant_batch(kernels conv conv_error dense/dense matrix/conv matrix/patches matrix/weights winograd/conv
  winograd/correlation winograd/narrow winograd/staged_weights winograd/stretches winograd/tiling
  winograd/transformed_weights)
orthant_batch(kernels direct/conv direct/correlation direct/geometry direct/rows instruction_set machine onednn/call
  onednn/conv task_key)
orthant_batch(kernels elementwise/bias_gradient elementwise/permuting_copy elementwise/dropout elementwise/fill lines
  loss/loss loss/label norm/norm pool/pool pool/average pool/backward pool/forward pool/global pool/peaks primitive
  elementwise/sum)
orthant_simd_batch(kernels elementwise/activation channel_sums elementwise/copy direct/activation loss/value
  elementwise/softmax elementwise/update)
orthant_simd_batch(kernels norm/backward norm/forward norm/sums pool/gradient_rows pool/peak_rows pool/rows)
orthant_batch(data formats/hdf5_describe formats/hdf5_layout formats/hdf5_outline formats/hdf5_survey formats/safetensors)
orthant_batch(data arrays/convert_box sets/hdf5_dataset formats/hdf5_read formats/hdf5_unpack sets/intake sets/sample_store)
orthant_batch(data formats/npy sets/npy_dataset formats/npy_header arrays/number arrays/stream generate/synthetic)
orthant_batch(data generate/cosmology generate/deposit generate/field generate/modes generate/power_spectrum generate/slab_fft
  generate/transfer_function generate/universe_files)
orthant_batch(data io/child_process io/file io/file_list tools/file_report io/gzip_file formats/nifti sets/orientation
  formats/volume_file)
orthant_batch(data arrays/axes tools/convert formats/hdf5_write generate/organ_files tools/set_check io/set_directory)
orthant_batch(data io/crc32c io/directory_lock io/large_block generate/organs formats/tfrecord io/threads sets/transform generate/value_noise)
orthant_batch(train chrome_trace progress scores scores_text validation weights)
orthant_batch(train loader loop mini_batches open_data prefetch sample_feed sample_stream sample_values slots)
orthant_batch(train data_options learning_rate run_data run_fields run_file run_text split validation_options)
orthant_batch(train checkpoint/directory checkpoint/hashed_file checkpoint/manifest checkpoint/own_state checkpoint/restore
  checkpoint/writer)
orthant_batch(train delivery evaluator new_samples prediction_files run_directory)
orthant_batch(engine arena choices choose choose_kernels engine kernel_needs memory parameter_order session shared_memory step_memory)
orthant_batch(engine candidate_tables measuring measuring_time piece_run tune)
orthant_batch(cli bench bench_halo bench_io bench_kernels bench_oracle bench_step oracle_cases step_times)
orthant_batch(cli command_line data data_convert data_inspect data_make data_verify file_reports make_cosmology make_organs
  make_progress)
orthant_batch(cli doctor evaluate evaluation_run export file_progress infer inspect kernel_options models network_options
  parallel step table train tune units)
orthant_batch(cli auto_plan bench_schedule calibrate log_chart machine_profile plan_sweep)
orthant_batch(cli measured_run plan plan_compare plan_remedies plan_report plan_timeline)
orthant_batch(calibrate links machine passes plans profile_file replay shapes tasks)
orthant_batch(wrapper budget cost_store options part process workspace)
orthant_batch(wrapper our_core way)
