"""Training of policies: multi-agent TD3 with central critics over native roll-outs.

`start.training` puts the parts together. PyTorch, of the extra `train`, is imported by the modules of this package that
compute, and by nothing else in Astraea; `config`, `forms`, `rollouts`, `reward` and `replay` do without.
"""
