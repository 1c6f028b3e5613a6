#!/usr/bin/env python3
"""Compares the manifests of deploy/kubernetes with the published schemas of Kubernetes and of Kubeflow, strictly: a field that they do
not have is an error. Run by `make check-kubernetes`, whose venv has the schemas."""

import pathlib
import sys

import kubernetes_validate
import kubeflow_trainer_api.models as trainer
import yaml
from kubeflow.training import models as training

KUBERNETES = "1.30"
TRAINER = {"TrainJob": trainer.TrainerV1alpha1TrainJob, "TrainingRuntime": trainer.TrainerV1alpha1TrainingRuntime}


def dropped(given, kept, place):
    """The fields of `given` that a schema has not kept."""
    if isinstance(given, dict):
        kept = kept or {}
        return [found for key, value in given.items()
                for found in (dropped(value, kept[key], f"{place}.{key}") if key in kept else [f"{place}.{key}"])]
    if isinstance(given, list):
        return [found for i, value in enumerate(given) for found in dropped(value, (kept or [])[i], f"{place}[{i}]")]
    return []


def check_pod(template, place):
    """A pod template, as part of what Kubernetes itself knows."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "pod"},
           "spec": {"template": {"metadata": template.get("metadata", {}),
                                 "spec": {"restartPolicy": "Never", **template["spec"]}}}}
    kubernetes_validate.validate(job, KUBERNETES, strict=True)
    print(f"{place}: pod accepted")


def check_pytorch_job(document, place):
    def known(model, given, where):
        return [f"{where}.{key}" for key in given if key not in model.attribute_map.values()]

    spec = document["spec"]
    unknown = known(training.KubeflowOrgV1PyTorchJob, document, place)
    unknown += known(training.KubeflowOrgV1PyTorchJobSpec, spec, f"{place}.spec")
    unknown += known(training.KubeflowOrgV1RunPolicy, spec.get("runPolicy", {}), f"{place}.spec.runPolicy")
    for name, replica in spec["pytorchReplicaSpecs"].items():
        unknown += known(training.KubeflowOrgV1ReplicaSpec, replica, f"{place}.spec.pytorchReplicaSpecs.{name}")
        check_pod(replica["template"], f"{place} {name}")
    return unknown


def check(document, place):
    kind = document["kind"]
    if kind == "PyTorchJob":
        return check_pytorch_job(document, place)
    if kind in TRAINER:
        for job in document["spec"].get("template", {}).get("spec", {}).get("replicatedJobs", []):
            check_pod(job["template"]["spec"]["template"], f"{place} {job['name']}")
        return dropped(document, TRAINER[kind].from_dict(document).to_dict(), place)
    kubernetes_validate.validate(document, KUBERNETES, strict=True)
    return []


def main():
    folder = pathlib.Path(__file__).resolve().parent.parent / "deploy/kubernetes"
    failed = False
    for path in sorted(folder.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            place = f"{path.name}: {document['kind']}"
            try:
                unknown = check(document, place)
            except kubernetes_validate.ValidationError as error:
                unknown = [f"{place}: {error.message}"]
            for field in unknown:
                print(f"{field}: not in the published schema", file=sys.stderr)
            failed |= bool(unknown)
            if not unknown:
                print(f"{place}: accepted")
    sys.exit(failed)


if __name__ == "__main__":
    main()
