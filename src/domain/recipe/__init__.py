"""What may be done, how, where and with what: from the contract of an operation to the steps that carry it out."""
